"""How rows reach a table: staged by the workers, merged by one transaction."""
