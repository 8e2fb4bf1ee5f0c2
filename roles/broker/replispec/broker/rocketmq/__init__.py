"""The broker of RocketMQ in controller mode, as RIP-44 describes it.

`node.BrokerNode` owns the parts and passes each event on to them; the parts are in `core`:

    manager       from start to serving: identity, registration, heartbeats (machine replicas_manager)
    role          who is master and who is in the SyncStateSet (machine broker_role)
    replicated    the commit log with its replication: master's side or replica's, as the role says
    sends, pulls  producers and consumers; a send is answered when enough members of the set have it
    topics, offsets, clients, groups, slave, admin, addresses   what a broker knows and serves beside the log

The way of a sent message: `sends` -> `log.MessageStore` -> one flush for all that came meanwhile -> replicas
report how far they are -> `replicated` computes what is confirmed -> `sends` answers.

The decisions are in `spec/statemachines/rocketmq`: `replicas_manager`, `broker_registration`, `broker_role`,
`ha_master`, `ha_replica`; and in rules with vectors, `spec/vectors/rocketmq/sync_state_set.yaml`.
"""
