"""The Wireshark dissector: tables out of the model, and hand-written parts in Lua that read them."""
