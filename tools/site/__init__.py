"""Parts of the documentation site that MkDocs does not have."""
