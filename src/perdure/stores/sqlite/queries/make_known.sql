-- Never the latest of a name that has others: what new runs start with stays what it was.
INSERT INTO definition (hash, name, version, kind, source, created, max_duration)
VALUES (
    :hash, :name, :version, :kind, :source,
    min(:created, coalesce(
        (SELECT max(created) - 1 FROM definition WHERE name = :name), :created
    )),
    :max_duration
)
ON CONFLICT (hash) DO NOTHING
