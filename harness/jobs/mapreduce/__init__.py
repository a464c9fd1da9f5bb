"""The papers' applications as programs that compute: what they are, how they are submitted, whether they were right."""
