"""Requests for properties: few names and versions, so that they meet each other."""

from hypothesis import strategies as st

from replispec.metastore.zookeeper.core.values import (
    CheckVersion,
    CloseSession,
    Create,
    Delete,
    OpenSession,
    Request,
    SetData,
    WriteNodes,
)

NAMES = st.sampled_from(("a", "b", "c-"))
PATHS = st.lists(NAMES, min_size=1, max_size=3).map(lambda names: "/" + "/".join(names))
DATA = st.one_of(st.none(), st.binary(max_size=6))
VERSIONS = st.sampled_from((-1, -1, 0, 1, 2))
SESSIONS = st.sampled_from((7, 8, 9))
CHANGES = st.one_of(
    st.builds(Create, PATHS, DATA, st.booleans(), st.booleans()),
    st.builds(Create, PATHS, DATA),
    st.builds(Delete, st.one_of(PATHS, st.just("/")), VERSIONS),
    st.builds(SetData, PATHS, DATA, VERSIONS),
    st.builds(CheckVersion, PATHS, VERSIONS),
)
WRITES = st.builds(WriteNodes, SESSIONS, st.lists(CHANGES, min_size=1, max_size=4).map(tuple))
REQUESTS: st.SearchStrategy[Request] = st.one_of(
    WRITES,
    WRITES,
    WRITES,
    st.builds(OpenSession, SESSIONS, st.just(b"p" * 16), st.just(6_000)),
    st.builds(CloseSession, SESSIONS, st.booleans()),
)
HISTORIES = st.lists(REQUESTS, max_size=40).map(
    lambda requests: [OpenSession(7, b"p" * 16, 6_000), OpenSession(8, b"q" * 16, 9_000), *requests]
)
