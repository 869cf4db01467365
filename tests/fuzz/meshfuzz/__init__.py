"""The fuzzer: cases made from a seed, a judge for one case, and workers that survive what they find."""
