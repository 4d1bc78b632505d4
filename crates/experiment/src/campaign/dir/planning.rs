//! Checks of a grid before its campaign is written.

use std::{
    fs,
    path::{Path, PathBuf},
};

use super::*;

impl Campaign {
    /// Plans the campaign of the grid at `path` in `dir`, which must not exist or be empty. Checks
    /// the plan of every task.
    ///
    /// Errors: the grid or a plan is wrong; a combination makes no sense; too many tasks.
    pub fn plan(path: &Path, dir: &Path, senesce: &str) -> Result<Self, Error> {
        let (campaign, text, texts) = Self::prepare(path, dir)?;
        campaign.write(&text, &texts, senesce)?;
        Self::open(dir)
    }

    /// Checks what [`plan`](Self::plan) checks. Writes nothing.
    pub fn check(path: &Path, dir: &Path) -> Result<Self, Error> {
        Self::prepare(path, dir).map(|(campaign, ..)| campaign)
    }

    /// The campaign, the text of the grid, and the texts of its plans.
    fn prepare(path: &Path, dir: &Path) -> Result<(Self, String, Vec<String>), Error> {
        crate::run::check_new(dir)?;
        let absolute = std::path::absolute(dir).map_err(Error::io("look up", dir))?;
        let begun_in = fs::canonicalize(".").map_err(Error::io("look up", "."))?;
        [&absolute, &begun_in].into_iter().try_for_each(|path| check_text(path))?;
        let text = read_text(path)?;
        let grid = Grid::parse(path, &text)?;
        let base = path.parent().unwrap_or(Path::new("."));
        let texts = grid.plans.iter().map(|named| read_text(&named.path_from(base)));
        let texts = texts.collect::<Result<Vec<_>, _>>()?;
        let sources: Vec<PathBuf> = grid.plans.iter().map(|named| named.path_from(base)).collect();
        let hash = hash_of(&text, &texts);
        let id = hash_of(&hash, &[absolute.display().to_string()])[..ID_LETTERS].to_owned();
        let paths = CampaignPaths::new(dir);
        let campaign = Self::of(paths, (grid, path), (&texts, &sources), (id, hash), begun_in)?;
        let count = campaign.count();
        if count > MOST_TASKS {
            let problem = format!("has {count} tasks; the limit is {MOST_TASKS}");
            return Err(PlanError::Contradiction { path: path.to_owned(), key: "grid".into(), problem }.into());
        }
        for task in campaign.tasks() {
            campaign.task_plan(&task)?;
        }
        Ok((campaign, text, texts))
    }
}
