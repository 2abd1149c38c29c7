"""The folder of a store on disk: who holds it, its logs, and opening it strictly."""
