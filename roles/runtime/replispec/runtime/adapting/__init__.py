"""The adapter's side of the adapter protocol: requests on a pipe become processes on this machine.

In come `RunnerMessage` on one file descriptor, out go `AdapterMessage` on another; between them instances are
started, crashed, stopped, suspended and reset. What an implementation needs to be started is asked of one
object, `adapter_shell.Programs`; nothing here knows a protocol of brokers.

Begin with `adapter_shell.serve`, then `instances_shell.Instance`. docs/adapter-protocol.md is what is kept.
"""
