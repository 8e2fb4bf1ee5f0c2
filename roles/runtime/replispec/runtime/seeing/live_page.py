PAGE = b""
POLICY = ""
