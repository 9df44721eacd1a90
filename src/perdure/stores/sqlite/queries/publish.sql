INSERT INTO definition (hash, name, version, kind, source, created)
VALUES (
    :hash, :name, :version, :kind, :source,
    max(:created, coalesce(
        (SELECT max(created) + 1 FROM definition WHERE name = :name AND hash <> :hash), :created
    ))
)
ON CONFLICT (hash) DO UPDATE SET created = excluded.created
