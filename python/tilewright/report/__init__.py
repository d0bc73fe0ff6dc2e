"""Reports on databases and searches: tables, charts, and the page that shows both."""
