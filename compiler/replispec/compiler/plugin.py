"""The protoc plugin: reads a code generation request on standard input, writes the answer.

protoc runs it with `--replispec_out`; the parameter is the family. Faults of the specification
come back as protoc errors, so that they look like every other error of a .proto file.
"""

from __future__ import annotations

import sys

from google.protobuf.compiler import plugin_pb2

from replispec.compiler.emit.messages import compile_messages
from replispec.compiler.model.message import SpecificationError


def answer(request: plugin_pb2.CodeGeneratorRequest) -> plugin_pb2.CodeGeneratorResponse:
    """The generated files of one request, or its error."""
    response = plugin_pb2.CodeGeneratorResponse()
    response.supported_features = plugin_pb2.CodeGeneratorResponse.FEATURE_PROTO3_OPTIONAL
    try:
        outputs = compile_messages(request.proto_file, family=request.parameter)
    except SpecificationError as fault:
        response.error = str(fault)
        return response
    for name in sorted(outputs):
        response.file.add(name=name, content=outputs[name])
    return response


def main() -> None:
    """Entry point of the plugin process."""
    request = plugin_pb2.CodeGeneratorRequest.FromString(sys.stdin.buffer.read())
    sys.stdout.buffer.write(answer(request).SerializeToString())


if __name__ == "__main__":
    main()
