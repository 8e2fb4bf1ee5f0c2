"""The controller of RocketMQ, as RIP-44 describes it.

The way of a request that changes a broker set, such as AlterSyncStateSet (1001):

    node.ControllerNode      takes the bytes; `remoting.RequestServer` makes a request of them
    machines/broker_set_wire (generated) makes an event of the request, by the bindings of broker_set
    core/broker_set          steps the machine: does the event change anything, and what is answered
    log.ControllerLog        proposes the event's record, and asks for one write for all that came meanwhile
    core/broker_sets         applies the record once it is persisted; effects become answers and notices
    notifier                 sends notices to brokers, one-way

Beside it: `core/heartbeats` knows which brokers are alive, `administration` answers what is configured.
The decisions themselves stand in `spec/statemachines/rocketmq/broker_set.yaml`; no module here has one.

Words: a *broker set* is one master with its replicas, known by the broker name; what the controller knows of
it are the variables of the machine. A *cluster* has many of them. A broker that sends heartbeats without
being registered in its broker set is *unregistered*.
"""
