-- Never the latest of a name that has others: what new runs start with stays what it was.
INSERT INTO definition (hash, name, version, kind, source, created)
VALUES (
    :hash, :name, :version, :kind, :source,
    min(:created, coalesce(
        (SELECT max(created) - 1 FROM definition WHERE name = :name), :created
    ))
)
ON CONFLICT (hash) DO NOTHING
