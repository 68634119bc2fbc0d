"""Programs: steps, the working memory that they run in, and how they are made."""
