"""The name server: knows which broker holds which topic, as the brokers themselves announce it.

In come announcements of brokers and questions of clients; out go routes. It holds nothing on disk and talks
to no other name server: brokers announce themselves to all of them, again and again, and whoever is silent
for too long is forgotten. `FAMILY/routes.py` is what it knows, `FAMILY/node.py` is the role; begin with the
first.
"""
