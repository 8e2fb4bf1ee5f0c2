"""The compiler of the specification: protoc plugin, machine and guard compiler, emitters, checks."""
