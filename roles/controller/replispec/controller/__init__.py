"""The controller: who is master of each broker set, decided once and remembered; and the name server."""
