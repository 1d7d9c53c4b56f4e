"""Topics: named streams of messages from publishers to whoever subscribed."""
