//! The lists of files of the Debian packages, without a build of packages.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;

use super::lab::{Lab, SENESCE};

const PROJECT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
/// The directory of the files that `make deb` generates, relative to the directory of a crate.
const GENERATED: &str = "../../target/generated/";

/// A line of `assets`: the pattern of its files, their place and their mode.
struct Asset {
    source: String,
    place: String,
    mode: String,
}

/// A package: its name, the directory of its crate, and its metadata for cargo-deb.
struct Package {
    name: &'static str,
    dir: PathBuf,
    deb: Value,
    version: String,
}

impl Package {
    fn assets(&self) -> Vec<Asset> {
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let assets = self.deb["assets"].as_array().unwrap().iter();
        assets.map(|asset| Asset { source: text(&asset[0]), place: text(&asset[1]), mode: text(&asset[2]) }).collect()
    }

    /// The files of an asset. `generated` stands for the directory of generated files.
    fn files(&self, asset: &Asset, generated: &Path) -> Vec<PathBuf> {
        let pattern = match asset.source.strip_prefix(GENERATED) {
            Some(rest) => generated.join(rest),
            None => self.dir.join(&asset.source),
        };
        let (dir, name) = (pattern.parent().unwrap(), pattern.file_name().unwrap().to_string_lossy());
        let Some((start, end)) = name.split_once('*') else { return vec![pattern.clone()] };
        let entries = fs::read_dir(dir).unwrap_or_else(|error| panic!("{}: {error}", asset.source));
        let names = entries.map(|entry| entry.unwrap().path());
        let fits = |path: &PathBuf| {
            let name = path.file_name().unwrap().to_string_lossy();
            name.len() >= start.len() + end.len() && name.starts_with(start) && name.ends_with(end)
        };
        names.filter(fits).collect()
    }
}

/// The crates of the project, as cargo reads them.
fn crates() -> Vec<Value> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
        .current_dir(PROJECT)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    metadata["packages"].as_array().unwrap().clone()
}

/// The Debian packages.
fn packages() -> [Package; 2] {
    let crates = crates();
    ["senesce", "senesce-fs"].map(|name| {
        let found = crates.iter().find(|package| package["name"] == name).unwrap();
        Package {
            name,
            dir: Path::new(found["manifest_path"].as_str().unwrap()).parent().unwrap().to_owned(),
            deb: found["metadata"]["deb"].clone(),
            version: found["version"].as_str().unwrap().to_owned(),
        }
    })
}

/// Runs `.ci/package-files` with the program under test.
fn generate(lab: &Lab) -> PathBuf {
    let generated = lab.path("package");
    let mut command = Command::new(format!("{PROJECT}/.ci/package-files"));
    lab.confine(command.arg(SENESCE).arg(&generated));
    super::lab::Done::of(command.output().unwrap()).good();
    generated
}

/// All files below a directory.
fn below(dir: &Path) -> Vec<PathBuf> {
    let paths = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    paths.flat_map(|path| if path.is_dir() { below(&path) } else { vec![path] }).collect()
}

#[test]
fn packages_have_every_page_and_only_existing_files() {
    let lab = Lab::new();
    let generated = generate(&lab);
    check_pages(&lab, &generated);
    let (mut places, mut sources) = (BTreeSet::new(), BTreeSet::new());
    for package in packages() {
        for asset in package.assets() {
            let is_program = asset.source == format!("target/release/{}", package.name);
            assert_eq!(asset.mode, if is_program { "755" } else { "644" }, "{}", asset.source);
            if is_program {
                continue;
            }
            let files = package.files(&asset, &generated);
            assert!(!files.is_empty(), "{}: {} fits no file", package.name, asset.source);
            for file in files {
                assert!(file.is_file(), "{}: {} is not a regular file", package.name, file.display());
                let name = file.file_name().unwrap().to_string_lossy().into_owned();
                let place = if asset.place.ends_with('/') { asset.place.clone() + &name } else { asset.place.clone() };
                assert!(places.insert(place.clone()), "two files are installed as {place}");
                sources.insert(file.canonicalize().unwrap());
            }
        }
        for key in ["license-file", "changelog", "maintainer-scripts"] {
            let value = &package.deb[key];
            let Some(path) = value.as_str().or_else(|| value[0].as_str()) else { continue };
            assert!(package.dir.join(path).exists(), "{}: {key} {path}", package.name);
        }
    }
    // Each generated file, and each file of contrib/ and plans/, must be in a package.
    let wanted = [generated, format!("{PROJECT}/plans").into(), format!("{PROJECT}/contrib").into()];
    for file in wanted.iter().flat_map(|dir| below(dir)) {
        let file = file.canonicalize().unwrap();
        let is_for_building = file.components().any(|part| part.as_os_str() == "debian" || part.as_os_str() == "rpm");
        assert!(is_for_building || sources.contains(&file), "no package has {}", file.display());
    }
}

/// The file names below a directory.
fn names(dir: PathBuf) -> BTreeSet<String> {
    below(&dir).iter().map(|path| path.file_name().unwrap().to_string_lossy().into_owned()).collect()
}

/// Fails unless the man page of each verb is in the directory of the program that executes it.
fn check_pages(lab: &Lab, generated: &Path) {
    lab.run(["man", "--out", "all"]).good();
    let [own, engines] = ["senesce/man", "senesce-fs/man"].map(|dir| names(generated.join(dir)));
    assert!(own.contains("senesce.1") && own.contains("senesce-inspect.1"), "{own:?}");
    assert!(engines.contains("senesce-fs.1") && engines.contains("senesce-garden.1"), "{engines:?}");
    let belongs = |name: &String| {
        ["senesce-fs", "senesce-garden"]
            .iter()
            .any(|verb| name.strip_prefix(verb).is_some_and(|rest| rest.starts_with(['-', '.'])))
    };
    assert!(engines.iter().all(belongs) && !own.iter().any(belongs), "{own:?} {engines:?}");
    assert_eq!(&own | &engines, names(lab.path("all")));
}

#[test]
fn changelog_and_citation_have_the_crate_version() {
    let text = |name: &str| fs::read_to_string(format!("{PROJECT}/{name}")).unwrap();
    let (changelog, citation) = (text("contrib/debian/changelog"), text("CITATION.cff"));
    for package in packages() {
        let first = format!("senesce ({}-1) ", package.version);
        assert!(changelog.starts_with(&first), "contrib/debian/changelog does not start with {first}");
        let line = format!("version: {}", package.version);
        assert!(citation.lines().any(|found| found == line), "CITATION.cff has no line {line}");
    }
}

#[test]
fn untagged_package_is_older_than_its_release() {
    let output = Command::new(format!("{PROJECT}/.ci/package-version")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let version = String::from_utf8(output.stdout).unwrap().trim().to_owned();
    let release = format!("{}-1", packages()[0].version);
    let is_tagged = version == release;
    assert!(is_tagged || version.starts_with(&format!("{}~git", packages()[0].version)), "{version}");
    let compared = Command::new("dpkg").args(["--compare-versions", &version, "le", &release]).status().unwrap();
    assert!(compared.success(), "dpkg sorts {version} after {release}");
}

#[test]
fn crates_have_what_a_registry_requires() {
    let crates = crates();
    let is_private = |found: &Value| found["publish"].as_array().is_some_and(Vec::is_empty);
    let private: BTreeSet<&str> =
        crates.iter().filter(|found| is_private(found)).map(|found| found["name"].as_str().unwrap()).collect();
    assert_eq!(private, BTreeSet::from(["senesce-testkit", "xtask"]));
    for found in crates.iter().filter(|found| !is_private(found)) {
        let name = &found["name"];
        assert_eq!(found["license"], "Apache-2.0", "{name}");
        for list in ["keywords", "categories"] {
            assert!((1..=5).contains(&found[list].as_array().unwrap().len()), "{name}: {list}");
        }
        let description = found["description"].as_str().unwrap();
        assert!(description.ends_with('.') && description.len() < 120, "{name}: {description}");
        for dependency in found["dependencies"].as_array().unwrap() {
            let (of, version) = (dependency["name"].as_str().unwrap(), dependency["req"].as_str().unwrap());
            let is_ours = dependency["path"].is_string() && dependency["kind"].is_null();
            let wanted = format!("={}", found["version"].as_str().unwrap());
            assert!(!is_ours || version == wanted, "{name} depends on {of} {version}, not {wanted}");
        }
    }
}

#[test]
fn files_are_not_generated_without_the_engines() {
    let lab = Lab::new();
    let mut command = Command::new(format!("{PROJECT}/.ci/package-files"));
    // senesce-fs is not in this directory.
    lab.confine(command.arg(lab.path("senesce")).arg(lab.path("package")));
    super::lab::Done::of(command.output().unwrap()).refused(3, &["senesce-fs is not beside", "make build-fs"]);
    assert!(!lab.path("package").exists());
}
