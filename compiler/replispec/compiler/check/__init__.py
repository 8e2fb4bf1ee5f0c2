"""What makes a model whole, beyond what a single file can show: refused with place, fault and advice."""
