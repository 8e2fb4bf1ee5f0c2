"""Our programs on machines that lose their power: what of the lab runs in the processes of the roles."""
