"""The serving container: HTTP and WebSocket surface, admission, scheduler, engine, audio."""
