"""How processes are seen by HTTP: metrics, health, and a page. Pure: bytes in, bytes out.

`answers` says what is answered to which request, from the views of the nodes; `exposition` makes the text of
metrics, `http` reads requests and writes answers within bounds. `net/seen_shell` holds the sockets.
"""
