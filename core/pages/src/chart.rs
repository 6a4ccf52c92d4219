//! Plots as SVG: lines over a logarithmic axis of sizes, and bars on a logarithmic scale.
//!
//! Two shapes, a page of code. A plotting library would bring a dozen crates for them.

use std::fmt::Write as _;

/// With this many points or more, marks are powers of ten, and points are not drawn.
const CROWD: usize = 25;

/// A picture of figures.
pub enum Chart {
    /// A line per series.
    Lines {
        /// What it shows.
        title: String,
        /// What the axes say.
        axes: [String; 2],
        /// The lines.
        series: Vec<ChartSeries>,
    },
    /// A bar per figure; figures are above 0.
    Bars {
        /// What it shows.
        title: String,
        /// The unit of all figures.
        unit: String,
        /// Name, figure, and whether it is the paper's.
        bars: Vec<(String, f64, bool)>,
    },
}

/// A line.
pub struct ChartSeries {
    /// In the legend.
    pub name: String,
    /// The paper's are dashed.
    pub paper: bool,
    /// Ascending, all above 0.
    pub points: Vec<(f64, f64)>,
}

const WIDTH: f64 = 760.;
const HEIGHT: f64 = 440.;
/// Room for axes and legend: left, right, top, bottom.
const LEFT: f64 = 70.;
const RIGHT: f64 = 20.;
const TOP: f64 = 50.;
const BOTTOM: f64 = 60.;
/// Tell apart for most eyes (Okabe and Ito).
const COLOURS: [&str; 8] =
    ["#0072b2", "#56b4e9", "#d55e00", "#e69f00", "#009e73", "#cc79a7", "#000000", "#999999"];
const PAPER: &str = "#999999";
const OURS: &str = "#0072b2";

impl Chart {
    /// The picture, complete and on its own.
    pub fn svg(&self) -> String {
        match self {
            Chart::Lines { title, axes, series } => lines(title, axes, series),
            Chart::Bars { title, unit, bars } => self::bars(title, unit, bars),
        }
    }
}

fn lines(title: &str, [x_name, y_name]: &[String; 2], series: &[ChartSeries]) -> String {
    let all = || series.iter().flat_map(|s| &s.points);
    let mut ticks: Vec<f64> = all().map(|p| p.0).collect();
    ticks.sort_by(f64::total_cmp);
    ticks.dedup();
    let (x_min, x_max) = match ticks[..] {
        [] => (1., 2.),
        [only] => (only / 2., only * 2.),
        [first, .., last] => (first, last),
    };
    let y_step = step(all().map(|p| p.1).fold(f64::MIN_POSITIVE, f64::max));
    let y_max = (all().map(|p| p.1).fold(y_step, f64::max) / y_step).ceil() * y_step;
    let legend = 18. * series.len() as f64;
    let height = HEIGHT + legend;
    let x = |v: f64| LEFT + (v / x_min).ln() / (x_max / x_min).ln() * (WIDTH - LEFT - RIGHT);
    let y = |v: f64| HEIGHT - BOTTOM - v / y_max * (HEIGHT - TOP - BOTTOM);

    let mut svg = open(title, height);
    let mut level = 0.;
    while level <= y_max * 1.001 {
        let at = y(level);
        line(&mut svg, (LEFT, at), (WIDTH - RIGHT, at), "#dddddd");
        text(&mut svg, (LEFT - 6., at + 4.), "end", &number(level));
        level += y_step;
    }
    let crowded = ticks.len() >= CROWD;
    if crowded {
        let powers = x_min.log10().ceil() as i32..=x_max.log10().floor() as i32;
        ticks = powers.map(|power| 10f64.powi(power)).collect();
    }
    for tick in &ticks {
        line(&mut svg, (x(*tick), y(0.)), (x(*tick), y(0.) + 5.), "#333333");
        text(&mut svg, (x(*tick), y(0.) + 20.), "middle", &number(*tick));
    }
    line(&mut svg, (LEFT, y(0.)), (WIDTH - RIGHT, y(0.)), "#333333");
    text(&mut svg, ((LEFT + WIDTH - RIGHT) / 2., HEIGHT - 18.), "middle", x_name);
    text(&mut svg, (LEFT, TOP - 10.), "start", y_name);
    for (i, one) in series.iter().enumerate() {
        let colour = COLOURS[i % COLOURS.len()];
        let dash = if one.paper { " stroke-dasharray=\"6 4\"" } else { "" };
        let points: String =
            one.points.iter().map(|p| format!("{:.1},{:.1} ", x(p.0), y(p.1))).collect();
        let _ = writeln!(
            svg,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"{dash}/>",
            points.trim_end()
        );
        for p in one.points.iter().filter(|_| !crowded) {
            let (cx, cy) = (x(p.0), y(p.1));
            let _ =
                writeln!(svg, "<circle cx=\"{cx:.1}\" cy=\"{cy:.1}\" r=\"3\" fill=\"{colour}\"/>");
        }
        let at = HEIGHT + 18. * i as f64;
        let _ = writeln!(
            svg,
            "<path d=\"M{LEFT} {at} h36\" stroke=\"{colour}\" stroke-width=\"2\"{dash}/>"
        );
        text(&mut svg, (LEFT + 44., at + 4.), "start", &one.name);
    }
    svg + "</svg>\n"
}

fn bars(title: &str, unit: &str, bars: &[(String, f64, bool)]) -> String {
    const ROW: f64 = 26.;
    const NAMES: f64 = 290.;
    const FIGURES: f64 = 90.;
    let least = bars.iter().map(|b| b.1).fold(f64::MAX, f64::min).log10().floor();
    let most = bars.iter().map(|b| b.1).fold(0., f64::max).log10().ceil().max(least + 1.);
    let bottom = TOP + ROW * bars.len() as f64;
    let room = WIDTH - NAMES - FIGURES;
    let x = |v: f64| NAMES + (v.log10() - least) / (most - least) * room;
    let mut svg = open(title, bottom + BOTTOM);
    if !bars.is_empty() {
        for power in least as i32..=most as i32 {
            let v = 10f64.powi(power);
            line(&mut svg, (x(v), TOP), (x(v), bottom), "#dddddd");
            text(&mut svg, (x(v), bottom + 18.), "middle", &number(v));
        }
    }
    for (i, (name, v, paper)) in bars.iter().enumerate() {
        let at = TOP + ROW * i as f64;
        let colour = if *paper { PAPER } else { OURS };
        text(&mut svg, (NAMES - 8., at + 17.), "end", name);
        let wide = (x(*v) - NAMES).max(1.);
        let high = ROW - 8.;
        let _ = writeln!(
            svg,
            "<rect x=\"{NAMES}\" y=\"{:.1}\" width=\"{wide:.1}\" height=\"{high}\" fill=\"{colour}\"/>",
            at + 4.
        );
        text(&mut svg, (x(*v) + 6., at + 17.), "start", &number(*v));
    }
    let caption = format!("{unit} (logarithmic; grey: the paper's, blue: ours)");
    text(&mut svg, (NAMES + room / 2., bottom + 42.), "middle", &caption);
    svg + "</svg>\n"
}

fn open(title: &str, height: f64) -> String {
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
         font-family=\"sans-serif\" font-size=\"13\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
    );
    let _ = writeln!(svg, "<title>{}</title>", escape(title));
    let _ = writeln!(
        svg,
        "<text x=\"{:.1}\" y=\"24\" text-anchor=\"middle\" font-size=\"16\">{}</text>",
        WIDTH / 2.,
        escape(title)
    );
    svg
}

fn line(svg: &mut String, from: (f64, f64), to: (f64, f64), colour: &str) {
    let _ = writeln!(
        svg,
        "<path d=\"M{:.1} {:.1} L{:.1} {:.1}\" stroke=\"{colour}\"/>",
        from.0, from.1, to.0, to.1
    );
}

fn text(svg: &mut String, at: (f64, f64), anchor: &str, words: &str) {
    let _ = writeln!(
        svg,
        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\">{}</text>",
        at.0,
        at.1,
        escape(words)
    );
}

fn escape(words: &str) -> String {
    words.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// A round distance that cuts `most` into four to ten.
fn step(most: f64) -> f64 {
    let power = 10f64.powf(most.log10().floor());
    match most / power {
        m if m < 2. => power / 5.,
        m if m < 5. => power / 2.,
        _ => power,
    }
}

/// Without needless digits.
fn number(v: f64) -> String {
    let digits = if v == 0. { 0 } else { (2 - v.abs().log10().floor() as i32).clamp(0, 6) };
    let text = format!("{v:.*}", digits as usize);
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_lie_where_their_figures_are() {
        let series = vec![ChartSeries {
            name: "radix & <tags>".into(),
            paper: true,
            points: vec![(100., 0.), (400., 10.)],
        }];
        let axes = ["MB".to_owned(), "s".to_owned()];
        let svg = Chart::Lines { title: "sorts".into(), axes, series }.svg();
        assert!(svg.contains("points=\"70.0,380.0 740.0,50.0\""), "{svg}");
        assert!(svg.contains("stroke-dasharray") && svg.contains("radix &amp; &lt;tags&gt;"));
        assert_eq!((svg.matches("<svg").count(), svg.matches("</svg>").count()), (1, 1));
    }

    #[test]
    fn a_bar_ten_times_as_high_is_a_power_longer() {
        let bars =
            vec![("a".into(), 1., true), ("b".into(), 10., false), ("c".into(), 100., false)];
        let svg = Chart::Bars { title: "t".into(), unit: "MB/s".into(), bars }.svg();
        for width in ["width=\"1.0\"", "width=\"190.0\"", "width=\"380.0\""] {
            assert!(svg.contains(width), "{width}: {svg}");
        }
    }

    #[test]
    fn one_point_and_no_bar_are_drawn_too() {
        let series = vec![ChartSeries { name: "one".into(), paper: false, points: vec![(5., 5.)] }];
        let axes = [String::new(), String::new()];
        let svg = Chart::Lines { title: String::new(), axes, series }.svg();
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        let svg = Chart::Bars { title: String::new(), unit: String::new(), bars: Vec::new() }.svg();
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    }

    #[test]
    fn steps_are_round() {
        for (most, expected) in [(1., 0.2), (26.3, 5.), (343., 50.), (9.9, 1.), (0.03, 0.005)] {
            assert!((step(most) - expected).abs() < 1e-9, "{most}");
        }
    }
}
