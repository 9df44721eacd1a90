INSERT INTO definition (hash, name, version, kind, source, created, max_duration)
VALUES (
    :hash, :name, :version, :kind, :source,
    max(:created, coalesce(
        (SELECT max(created) + 1 FROM definition WHERE name = :name AND hash <> :hash), :created
    )),
    :max_duration
)
ON CONFLICT (hash) DO UPDATE SET created = excluded.created, max_duration = excluded.max_duration
