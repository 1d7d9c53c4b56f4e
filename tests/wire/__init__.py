"""The wire as strangers see it: test vectors, and a peer that imports nothing of ours."""
