"""Which stored rows can get no more changes once the watermark has passed them, and when they leave."""
