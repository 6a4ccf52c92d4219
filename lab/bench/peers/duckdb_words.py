"""DuckDB as a peer: counts the words of a text file.

    python duckdb_words.py INPUT OUTPUT --memory BYTES --temp FOLDER --threads N

Writes one row a word: the word, a tab, how often it occurs; sorted by the bytes of words.
"""

from duckdb_peer import NO_SEPARATOR, arguments, connect, text


def main():
    args = arguments()
    db = connect(args)
    lines = (
        f"read_csv({text(args.input)}, columns = {{'line': 'VARCHAR'}}, auto_detect = false, header = false, "
        f"delim = {text(NO_SEPARATOR)}, quote = '', escape = '')"
    )
    words = f"SELECT unnest(string_split(line, ' ')) AS word FROM {lines}"
    counts = f"SELECT word, count(*) FROM ({words}) WHERE word <> '' GROUP BY word ORDER BY word"
    db.execute(f"COPY ({counts}) TO {text(args.output)} (FORMAT csv, header false, delim '\t', quote '', escape '')")


main()
