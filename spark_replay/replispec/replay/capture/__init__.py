"""The container: records of pcap and pcapng files, and where their packets lie in the file.

`files` opens and maps a capture, `pcap` and `pcapng` read the two formats, `records` are what both come to;
`pcap_writer` and `pcapng_writer` write them.
"""
