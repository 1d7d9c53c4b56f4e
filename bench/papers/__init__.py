"""Each paper's evaluation: a module with `evaluate(paper, folder, quick)`, from configs/papers."""
