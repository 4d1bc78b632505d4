//! Pages from templates.

use minijinja::{Environment, Value, escape_formatter};
use senesce_core::{Printable, is_hazard};

use crate::error::Error;

/// Renders a page. `name` ends in `.html`, so that values are escaped. The template includes
/// `head.html`, the start of all pages, and `tail.html`, their end with data and script.
pub fn render_page(name: &str, template: &str, context: Value) -> Result<String, Error> {
    let mut environment = Environment::new();
    environment.set_formatter(|out, state, value| match value.as_str() {
        // Texts come from file names, other programs and repositories: show their control
        // characters.
        Some(text) if !value.is_safe() && text.chars().any(is_hazard) => {
            escape_formatter(out, state, &Value::from(Printable::lines(text).to_string()))
        }
        _ => escape_formatter(out, state, value),
    });
    environment.add_template("head.html", include_str!("../assets/head.html"))?;
    environment.add_template("tail.html", include_str!("../assets/tail.html"))?;
    environment.add_template("figure.html", include_str!("../assets/figure.html"))?;
    environment.add_template(name, template)?;
    Ok(environment.get_template(name)?.render(context)?)
}
