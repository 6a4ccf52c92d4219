//! Points, lines over time, and heat maps.

use std::fmt::Write as _;

use super::{
    BOTTOM, COLOURS, ChartSeries, HEIGHT, HeatTable, LEFT, RIGHT, TOP, WIDTH, line, number, open,
    step, text,
};

/// The side of a point.
const MARK: f64 = 2.;

/// A plot of points, or of the lines that join them, on linear axes from 0.
pub fn plane(
    title: &str,
    [x_name, y_name]: &[String; 2],
    series: &[ChartSeries],
    joined: bool,
) -> String {
    let all = || series.iter().flat_map(|s| &s.points);
    let x_step = step(all().map(|p| p.0).fold(f64::MIN_POSITIVE, f64::max));
    let y_step = step(all().map(|p| p.1).fold(f64::MIN_POSITIVE, f64::max));
    let whole = |most: f64, step: f64| (most / step).ceil().max(1.) * step;
    let x_max = whole(all().map(|p| p.0).fold(0., f64::max), x_step);
    let y_max = whole(all().map(|p| p.1).fold(0., f64::max), y_step);
    let x = |v: f64| LEFT + v / x_max * (WIDTH - LEFT - RIGHT);
    let y = |v: f64| HEIGHT - BOTTOM - v / y_max * (HEIGHT - TOP - BOTTOM);
    let mut svg = open(title, HEIGHT + 18. * series.len() as f64);
    let marks =
        |most: f64, step: f64| (0..=(most / step).round() as u32).map(move |i| f64::from(i) * step);
    for level in marks(y_max, y_step) {
        line(&mut svg, (LEFT, y(level)), (WIDTH - RIGHT, y(level)), "#dddddd");
        text(&mut svg, (LEFT - 6., y(level) + 4.), "end", &number(level));
    }
    for tick in marks(x_max, x_step) {
        line(&mut svg, (x(tick), y(0.)), (x(tick), y(0.) + 5.), "#333333");
        text(&mut svg, (x(tick), y(0.) + 20.), "middle", &number(tick));
    }
    text(&mut svg, ((LEFT + WIDTH - RIGHT) / 2., HEIGHT - 18.), "middle", x_name);
    text(&mut svg, (LEFT, TOP - 10.), "start", y_name);
    for (i, one) in series.iter().enumerate() {
        // Blue and vermilion are the first two that differ most.
        let colour = COLOURS[if joined { i } else { 2 * i } % COLOURS.len()];
        let mut path = String::new();
        for (n, p) in one.points.iter().enumerate() {
            let (x, y) = (x(p.0), y(p.1));
            let _ = if joined {
                write!(path, "{}{x:.1} {y:.1}", if n == 0 { 'M' } else { 'L' })
            } else {
                write!(path, "M{x:.1} {:.1}h{MARK}v{MARK}h-{MARK}z", y - MARK)
            };
        }
        let drawn = if joined {
            format!("fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"")
        } else {
            format!("fill=\"{colour}\" fill-opacity=\"0.7\"")
        };
        let _ = writeln!(svg, "<path d=\"{path}\" {drawn}/>");
        let at = HEIGHT + 18. * i as f64;
        let _ = writeln!(
            svg,
            "<rect x=\"{LEFT}\" y=\"{:.1}\" width=\"10\" height=\"10\" fill=\"{colour}\"/>",
            at - 5.
        );
        text(&mut svg, (LEFT + 18., at + 4.), "start", &one.name);
    }
    svg + "</svg>\n"
}

/// Tables side by side, darker where a figure is larger.
pub fn heat(
    title: &str,
    [rows, columns]: [&[String]; 2],
    [x_name, y_name]: &[String; 2],
    tables: &[HeatTable],
) -> String {
    const ROW: f64 = 40.;
    const GAP: f64 = 20.;
    const HEAD: f64 = 30.;
    let wide = (WIDTH - LEFT - RIGHT - GAP * tables.len() as f64) / tables.len().max(1) as f64;
    let cell = wide / columns.len().max(1) as f64;
    let bottom = TOP + HEAD + ROW * rows.len() as f64;
    let mut svg = open(title, bottom + BOTTOM);
    text(&mut svg, (LEFT - 8., TOP + HEAD - 8.), "end", y_name);
    for (i, name) in rows.iter().enumerate() {
        text(&mut svg, (LEFT - 8., TOP + HEAD + ROW * (i as f64 + 0.6)), "end", name);
    }
    for (t, table) in tables.iter().enumerate() {
        let left = LEFT + (wide + GAP) * t as f64;
        text(&mut svg, (left + wide / 2., TOP + HEAD - 8.), "middle", &table.name);
        for (i, name) in columns.iter().enumerate() {
            text(&mut svg, (left + cell * (i as f64 + 0.5), bottom + 18.), "middle", name);
        }
        let all = || table.cells.iter().flatten().flatten().copied();
        let (least, most) = (all().fold(f64::MAX, f64::min), all().fold(f64::MIN, f64::max));
        for (r, row) in table.cells.iter().enumerate() {
            for (c, figure) in row.iter().enumerate() {
                let (x, y) = (left + cell * c as f64, TOP + HEAD + ROW * r as f64);
                let heat =
                    figure.map(|v| if most > least { (v - least) / (most - least) } else { 0. });
                let fill = heat.map_or("none".to_owned(), |h| {
                    // From white to the vermilion of the lines.
                    let part = |to: f64| (255. - (255. - to) * h * 0.8).round();
                    format!("rgb({},{},{})", part(213.), part(94.), part(0.))
                });
                let _ = writeln!(
                    svg,
                    "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{cell:.1}\" height=\"{ROW}\" fill=\"{fill}\" stroke=\"#dddddd\"/>"
                );
                let words = figure.map_or("-".to_owned(), number);
                text(&mut svg, (x + cell / 2., y + ROW * 0.6), "middle", &words);
            }
        }
    }
    text(&mut svg, ((LEFT + WIDTH - RIGHT) / 2., bottom + 42.), "middle", x_name);
    svg + "</svg>\n"
}

#[cfg(test)]
mod tests {
    use super::super::Chart;
    use super::*;

    #[test]
    fn points_are_where_their_figures_are() {
        let one = |name: &str, points| ChartSeries { name: name.into(), paper: false, points };
        let series = vec![one("reads", vec![(0., 0.), (100., 10.)]), one("writes", Vec::new())];
        let axes = ["s".to_owned(), "GB".to_owned()];
        let svg = Chart::Points { title: "t".into(), axes, series }.svg();
        assert!(svg.contains("M70.0 378.0h2v2h-2zM740.0 48.0h2v2h-2z"), "{svg}");
        let axes = ["s".to_owned(), "GB".to_owned()];
        let series = vec![one("stock", vec![(0., 0.), (100., 10.)])];
        let svg = Chart::Time { title: "t".into(), axes, series }.svg();
        assert!(svg.contains("<path d=\"M70.0 380.0L740.0 50.0\" fill=\"none\" stroke="), "{svg}");
        let nothing = Chart::Points {
            title: "t".into(),
            axes: [String::new(), String::new()],
            series: Vec::new(),
        };
        let svg = nothing.svg();
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    }

    #[test]
    fn the_largest_figure_is_the_darkest_and_a_missing_one_is_open() {
        let table = |cells| HeatTable { name: "HDD".into(), cells };
        let chart = |tables| Chart::Heat {
            title: "t".into(),
            rows: vec!["a".into()],
            columns: vec!["x".into(), "y".into(), "z".into()],
            axes: ["columns".into(), "rows".into()],
            tables,
        };
        let svg = chart(vec![table(vec![vec![Some(10.), Some(20.), None]])]).svg();
        assert!(
            svg.contains("fill=\"rgb(255,255,255)\"") && svg.contains("fill=\"rgb(221,126,51)\""),
            "{svg}"
        );
        assert_eq!(svg.matches("fill=\"none\"").count(), 1);
        for tables in [
            Vec::new(),
            vec![table(vec![vec![None, None, None]])],
            vec![table(vec![vec![Some(5.)]])],
        ] {
            let svg = chart(tables).svg();
            assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        }
    }
}
