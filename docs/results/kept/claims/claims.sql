-- The tests of docs/results/claims.md. Run it with DuckDB in the directory of the runs, whose names are
-- claims-PLAN-SEED (`senesce run plans/claims-PLAN.toml --seed SEED --out claims-PLAN-SEED`).
CREATE TEMP MACRO plan_of(file) AS regexp_extract(file, 'claims-([a-z0-9-]+)-[0-9]+/', 1);
CREATE TEMP MACRO seed_of(file) AS regexp_extract(file, 'claims-[a-z0-9-]+-([0-9]+)/', 1)::INT;
-- The last cost of each volume, and its extents per file.
CREATE TEMP TABLE cost AS
SELECT plan_of(filename) AS plan, seed_of(filename) AS seed, arm, role, device, arg_max(seconds_per_gib, pulls) AS cost
FROM read_parquet('claims-*/results/modelled.parquet', filename = true) WHERE method = 'extents' GROUP BY ALL;
CREATE TEMP TABLE layout AS
SELECT plan_of(filename) AS plan, seed_of(filename) AS seed, arm, role, arg_max(extents_per_file, pulls) AS extents
FROM read_parquet('claims-*/results/layout.parquet', filename = true) GROUP BY ALL;
CREATE TEMP MACRO cost_of(p, s, a, r, d) AS
    (SELECT cost FROM cost WHERE plan = p AND seed = s AND arm = a AND role = r AND device = d);
CREATE TEMP MACRO extents_of(p, s, a, r) AS (SELECT extents FROM layout WHERE plan = p AND seed = s AND arm = a AND role = r);

-- A test: figure of a seed (`x` over `y`), and the limit that the claim sets. If `z` is set, the
-- slowdown `x` over `y` is divided by the slowdown of the arm `z`.
-- A volume is `PLAN/ARM/ROLE`. `device` is `extents` for extents per file, whose `y` is empty.
CREATE TEMP TABLE test(claim INT, figure TEXT, device TEXT, x TEXT, y TEXT, z TEXT, relation TEXT, bound DOUBLE);
INSERT INTO test VALUES
(1, 'ext4, roomy over fresh copy', 'HDD 7.2K', 'git/ext4/empty', 'git/ext4/unaged', '', '<=', 1.2),
(1, 'XFS, roomy over fresh copy', 'HDD 7.2K', 'git/xfs/empty', 'git/xfs/unaged', '', '<=', 1.2),
(1, 'Btrfs, roomy over fresh copy', 'HDD 7.2K', 'git/btrfs/empty', 'git/btrfs/unaged', '', '<=', 1.2),
(2, 'ext4, git: nearly full over roomy', 'HDD 7.2K', 'git/ext4/full', 'git/ext4/empty', '', '>', 1.2),
(2, 'XFS, git: nearly full over roomy', 'HDD 7.2K', 'git/xfs/full', 'git/xfs/empty', '', '>', 1.2),
(2, 'Btrfs, git: nearly full over roomy', 'HDD 7.2K', 'git/btrfs/full', 'git/btrfs/empty', '', '>', 1.2),
(2, 'ext4, FSFB: 95% full over roomy', 'HDD 7.2K', 'fill-95/ext4/full', 'fill-95/ext4/empty', '', '>', 1.2),
(2, 'XFS, FSFB: 95% full over roomy', 'HDD 7.2K', 'fill-95/xfs/full', 'fill-95/xfs/empty', '', '>', 1.2),
(3, 'ext4, FSFB: roomy over fresh copy', 'HDD 7.2K', 'fill-95/ext4/empty', 'fill-95/ext4/unaged', '', '<=', 1.2),
(3, 'XFS, FSFB: roomy over fresh copy', 'HDD 7.2K', 'fill-95/xfs/empty', 'fill-95/xfs/unaged', '', '>', 4.2),
(3, 'Btrfs, FSFB: roomy over fresh copy', 'HDD 7.2K', 'fill-95/btrfs/empty', 'fill-95/btrfs/unaged', '', '>', 4.2),
(4, 'ext4, 95% full over 80% full', 'HDD 7.2K', 'fill-95/ext4/full', 'fill/ext4/full', '', '>', 1.1),
(4, 'XFS, 95% full over 80% full', 'HDD 7.2K', 'fill-95/xfs/full', 'fill/xfs/full', '', '>', 1.1),
(4, 'Btrfs, 95% full over 80% full', 'HDD 7.2K', 'fill-95/btrfs/full', 'fill/btrfs/full', '', '>', 1.1),
(5, 'ext4, 80% full over 60% full', 'HDD 7.2K', 'fill/ext4/full', 'fill-60/ext4/full', '', '<=', 1.1),
(5, 'XFS, 80% full over 60% full', 'HDD 7.2K', 'fill/xfs/full', 'fill-60/xfs/full', '', '<=', 1.1),
(5, 'Btrfs, 80% full over 60% full', 'HDD 7.2K', 'fill/btrfs/full', 'fill-60/btrfs/full', '', '<=', 1.1),
(6, 'XFS, git: roomy over fresh copy', 'NVMe SSD', 'git/xfs/empty', 'git/xfs/unaged', '', '<=', 1.2),
(6, 'ext4, appends: aged over fresh copy', 'NVMe SSD', 'append/ext4/empty', 'append/ext4/unaged', '', '<=', 1.2),
(6, 'Btrfs, appends: aged over fresh copy', 'NVMe SSD', 'append/btrfs/empty', 'append/btrfs/unaged', '', '<=', 1.2),
(6, 'Btrfs, overwrites: aged over fresh copy', 'NVMe SSD', 'overwrite/btrfs/empty', 'overwrite/btrfs/unaged', '', '<=', 1.2),
(7, 'Btrfs, git: defragmented over aged', 'NVMe SSD', 'cure/btrfs-senesce/cured-empty', 'cure/btrfs-senesce/empty', '', '>', 0.9),
(7, 'ext4, git: defragmented over aged', 'NVMe SSD', 'cure/ext4-senesce/cured-empty', 'cure/ext4-senesce/empty', '', '>', 0.9),
(7, 'ext4, appends: defragmented over aged', 'NVMe SSD', 'append/ext4-senesce/cured-empty', 'append/ext4-senesce/empty', '', '>', 0.9),
(8, 'XFS, git: extents per file', 'extents', 'git/xfs/empty', '', '', '<=', 1.01),
(8, 'XFS, git: roomy over fresh copy', 'HDD 7.2K', 'git/xfs/empty', 'git/xfs/unaged', '', '<=', 1.2),
(9, 'XFS, slowdown of git (factor 0.2 to 0.3%) over that of appends (factor 86%)', 'HDD 7.2K', 'git/xfs/empty', 'git/xfs/unaged', 'append/xfs', '>', 1.0),
(10, 'ext4, with flex_bg over without', 'HDD 7.2K', 'options/ext4/empty', 'options/ext4-no-flex-bg/empty', '', '<=', 0.95),
(11, 'ext4, nodelalloc over default', 'HDD 7.2K', 'options/ext4-nodelalloc/empty', 'options/ext4/empty', '', '>', 1.0),
(12, 'Btrfs, nodes of 64 over 16 KiB', 'HDD 7.2K', 'options/btrfs-64k-nodes/empty', 'options/btrfs/empty', '', '<=', 1.0),
(12, 'Btrfs, nodes of 4 over 16 KiB', 'HDD 7.2K', 'options/btrfs-4k-nodes/empty', 'options/btrfs/empty', '', '>', 1.0),
(13, 'XFS, fresh copies: 16 over 4 groups', 'HDD 7.2K', 'options/xfs-16-groups/unaged', 'options/xfs/unaged', '', '>', 1.0),
(13, 'XFS, aged: 16 over 4 groups', 'HDD 7.2K', 'options/xfs-16-groups/empty', 'options/xfs/empty', '', '>', 1.0),
(14, 'Btrfs, aged: compressed over not', 'HDD 7.2K', 'options/btrfs-compress/empty', 'options/btrfs/empty', '', '<=', 1.0),
(15, 'Btrfs, aged over fresh copy', 'HDD 7.2K', 'overwrite/btrfs/empty', 'overwrite/btrfs/unaged', '', '>', 1.2),
(16, 'Btrfs with nodatacow, aged over fresh copy', 'HDD 7.2K', 'overwrite/btrfs-nodatacow/empty', 'overwrite/btrfs-nodatacow/unaged', '', '<=', 1.2),
(17, 'ext4, aged over fresh copy', 'HDD 7.2K', 'overwrite/ext4/empty', 'overwrite/ext4/unaged', '', '<=', 1.2),
(17, 'XFS, aged over fresh copy', 'HDD 7.2K', 'overwrite/xfs/empty', 'overwrite/xfs/unaged', '', '<=', 1.2),
(18, 'ext4, extents per file', 'extents', 'append/ext4/empty', '', '', '<=', 2.0),
(18, 'ext4, aged over fresh copy', 'HDD 7.2K', 'append/ext4/empty', 'append/ext4/unaged', '', '<=', 1.2),
(19, 'XFS, extents per file', 'extents', 'append/xfs/empty', '', '', '<=', 16.0),
(20, 'XFS, after xfs_fsr over before', 'HDD 7.2K', 'cure/xfs-xfs_fsr/cured-empty', 'cure/xfs-xfs_fsr/empty', '', '<=', 0.9),
(21, 'ext4, after e4defrag over before', 'HDD 7.2K', 'cure/ext4-e4defrag/cured-empty', 'cure/ext4-e4defrag/empty', '', '<=', 0.9),
(22, 'Btrfs, after its defragment over before', 'HDD 7.2K', 'cure/btrfs-btrfs/cured-empty', 'cure/btrfs-btrfs/empty', '', '<=', 0.9),
(23, 'ext4, fresh copy over moved in place', 'HDD 7.2K', 'cure/ext4-senesce/unaged', 'cure/ext4-senesce/cured-empty', '', '<=', 1.0),
(23, 'XFS, fresh copy over moved in place', 'HDD 7.2K', 'cure/xfs-senesce/unaged', 'cure/xfs-senesce/cured-empty', '', '<=', 1.0),
(23, 'Btrfs, fresh copy over moved in place', 'HDD 7.2K', 'cure/btrfs-senesce/unaged', 'cure/btrfs-senesce/cured-empty', '', '<=', 1.0),
(24, 'ext4, aged over fresh copy', 'HDD 7.2K', 'mail/ext4/empty', 'mail/ext4/unaged', '', '>', 1.2),
(24, 'XFS, aged over fresh copy', 'HDD 7.2K', 'mail/xfs/empty', 'mail/xfs/unaged', '', '>', 1.2),
(24, 'Btrfs, aged over fresh copy', 'HDD 7.2K', 'mail/btrfs/empty', 'mail/btrfs/unaged', '', '>', 1.2);

CREATE TEMP MACRO cost_at(volume, s, d) AS
    cost_of(split_part(volume, '/', 1), s, split_part(volume, '/', 2), split_part(volume, '/', 3), 'model: ' || d);
COPY (
    WITH seeds AS (SELECT DISTINCT seed FROM cost), seen AS (
        SELECT test.*, seed, CASE
            WHEN device = 'extents'
            THEN extents_of(split_part(x, '/', 1), seed, split_part(x, '/', 2), split_part(x, '/', 3))
            WHEN z != '' THEN cost_at(x, seed, device) / cost_at(y, seed, device)
                / (cost_at(z || '/empty', seed, device) / cost_at(z || '/unaged', seed, device))
            ELSE cost_at(x, seed, device) / cost_at(y, seed, device) END AS value
        FROM test, seeds
    )
    SELECT claim, figure, if(device = 'extents', '', device) AS device, split_part(x, '/', 1) AS plan,
        count(value) AS seeds, printf('%.4g', median(value)) AS median, printf('%.4g', min(value)) AS lowest,
        printf('%.4g', max(value)) AS highest, if(relation = '>', 'more than ', 'at most ') || printf('%.4g', bound) AS "limit",
        CASE WHEN count(value) < 6 THEN 'too few seeds'
            WHEN bool_and(if(relation = '>', value > bound, value <= bound)) THEN 'holds'
            WHEN bool_and(NOT if(relation = '>', value > bound, value <= bound)) THEN 'does not hold'
            ELSE 'undecided' END AS outcome
    FROM seen GROUP BY ALL ORDER BY claim, figure 
) TO 'tests.tsv' (DELIMITER '\t', HEADER, QUOTE '');
