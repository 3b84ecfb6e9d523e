"""Real MCP servers as the environment of a trial (docs/mcp.md)."""
