"""Operations computed straight from their descriptions, without any backend."""
