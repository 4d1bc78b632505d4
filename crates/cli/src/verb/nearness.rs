//! How near an aged volume is to its profile, in words.

use senesce_report::three_digits;

/// How near the files are to the profile, by total variation. `None` if no profile aged them.
pub fn tell_nearness(figures: &[(String, String)]) -> Option<String> {
    let near = |what: &str| {
        let name = format!("{what}.total_variation");
        let (_, share) = figures.iter().find(|(key, _)| *key == name)?;
        Some(format!("{}%", three_digits(100.0 * share.parse::<f64>().ok()?)))
    };
    let (sizes, depths, ages) = (near("size")?, near("depth")?, near("age")?);
    Some(format!("sizes within {sizes}, depths {depths}, ages {ages}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearness_to_a_profile_is_a_line() {
        let figures = [
            ("files", "90"),
            ("size.total_variation", "0.00312"),
            ("depth.total_variation", "0.00400"),
            ("age.total_variation", "0.32871"),
        ];
        let figures = figures.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(tell_nearness(&figures).as_deref(), Some("sizes within 0.312%, depths 0.400%, ages 32.9%"));
        assert_eq!(tell_nearness(&figures[..1]), None);
    }
}
