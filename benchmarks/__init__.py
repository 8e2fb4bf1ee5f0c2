"""What the replay and the codecs cost, measured; nothing here is installed or imported by the product."""
