"""What a run shows: tables, sentences, HTML, charts; each is a function of the trace."""
