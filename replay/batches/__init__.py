"""Many problems judged together: programs grouped by model, references scaled, and machine code over whole batches."""
