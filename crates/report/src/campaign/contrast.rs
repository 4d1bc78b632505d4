//! Colours of the texts in cells of a heat map: the one that is easier to read.

/// The colours of the light and of the dark scheme that a cell mixes, as in `light.css` and
/// `dark.css`.
const SCHEMES: [&str; 2] = [include_str!("../../assets/light.css"), include_str!("../../assets/dark.css")];

/// The least contrast of small text, of WCAG 2.
const LEAST: f64 = 4.5;

/// The colour of the text of a cell, as a CSS value for both schemes. `heat` is the share of the
/// full colour in the cell, percent. Either black or white always has enough contrast.
pub(super) fn text_colours(heat: u64) -> String {
    let name = |scheme: &str| {
        let cell = cell(scheme, heat);
        match contrast(cell, colour(scheme, "--ink")) >= LEAST {
            true => "var(--ink)",
            false if contrast(cell, [0.0; 3]) > contrast(cell, [1.0; 3]) => "black",
            false => "white",
        }
    };
    format!("light-dark({}, {})", name(SCHEMES[0]), name(SCHEMES[1]))
}

/// Red, green and blue from 0 to 1.
type Colour = [f64; 3];

/// A custom property of a scheme; black if the scheme lacks it.
fn colour(scheme: &str, name: &str) -> Colour {
    let value = scheme.lines().find_map(|line| line.trim().strip_prefix(name)?.trim().strip_prefix(": #"));
    let channel = |at: usize| {
        let digits = value.and_then(|value| value.get(at * 2..at * 2 + 2))?;
        Some(f64::from(u8::from_str_radix(digits, 16).ok()?) / 255.0)
    };
    [0, 1, 2].map(|at| channel(at).unwrap_or(0.0))
}

/// The colour of a cell: `color-mix(in srgb, ...)` of `campaign.css`.
fn cell(scheme: &str, heat: u64) -> Colour {
    let (none, all, share) = (colour(scheme, "--raised"), colour(scheme, "--full"), heat as f64 / 100.0);
    [0, 1, 2].map(|at| none[at] + (all[at] - none[at]) * share)
}

/// The contrast of two colours as WCAG 2 defines it: from 1 to 21.
fn contrast(a: Colour, b: Colour) -> f64 {
    let luminance = |colour: Colour| {
        let linear = |channel: f64| match channel <= 0.04045 {
            true => channel / 12.92,
            false => ((channel + 0.055) / 1.055).powf(2.4),
        };
        0.2126 * linear(colour[0]) + 0.7152 * linear(colour[1]) + 0.0722 * linear(colour[2])
    };
    let (a, b) = (luminance(a), luminance(b));
    (a.max(b) + 0.05) / (a.min(b) + 0.05)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cell_has_a_readable_text() {
        assert_eq!(contrast([0.0; 3], [1.0; 3]).round(), 21.0);
        for heat in 0..=100 {
            let chosen = text_colours(heat);
            let chosen = chosen.strip_prefix("light-dark(").unwrap().strip_suffix(')').unwrap();
            for (scheme, chosen) in SCHEMES.iter().zip(chosen.split(", ")) {
                let text = match chosen {
                    "var(--ink)" => colour(scheme, "--ink"),
                    "black" => [0.0; 3],
                    "white" => [1.0; 3],
                    other => panic!("{other}"),
                };
                let found = contrast(cell(scheme, heat), text);
                assert!(found >= LEAST, "{heat}%: {found}");
            }
        }
        assert_ne!(colour(SCHEMES[0], "--full"), [0.0; 3], "the schemes have the colours");
        assert_eq!(text_colours(0), "light-dark(var(--ink), var(--ink))");
        assert_eq!(text_colours(100), "light-dark(white, black)");
    }
}
