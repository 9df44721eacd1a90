-- One whose lease ran out may have beaten since it was looked at.
DELETE FROM worker WHERE id = :id AND (:gone OR lease_until <= :now)
