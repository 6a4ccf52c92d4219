//! Names that a shell would run, split or expand: no command sees them.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;

use crate::harness::{Folder, merganser, prints};

/// Places of a name in a command. Each prints the file, or its lines in another way.
const CONTEXTS: [&str; 13] = [
    "cat {in}",
    "cat \"{in}\"",
    "cat '{in}'",
    "cat \"$(echo \"{in}\")\"",
    "cat `echo {in}`",
    "cat $(printf %s '{in}')",
    "sh -c 'cat {in}'",
    "sh -c \"cat {in}\"",
    "sh -c \"cat $MERGANSER_IN\"",
    "eval cat {in}",
    "cat \"$MERGANSER_IN\"",
    "x=$(cat <<E\n{in}\nE\n); cat \"$x\"",
    "cp {in} {out}; : {dir} {part} \"{dir}\" '{part}'",
];

/// Names with everything that means something to a shell.
fn names() -> Vec<Vec<u8>> {
    let run = "touch PWNED";
    let mut names: Vec<Vec<u8>> = [
        format!("x$({run})"),
        format!("x`{run}`"),
        format!("x;{run};"),
        format!("x|{run}|"),
        format!("x&{run}&"),
        format!("x\n{run}\n"),
        format!("x'{run}'"),
        format!("'$({run})'"),
        format!("\"$({run})\""),
        format!("';{run};'"),
        format!("\";{run};\""),
        format!("\\\";{run};\\\""),
        format!("E\n{run}\nE"),
        format!("$({run}"),
        "a  b".to_owned(),
        "*".to_owned(),
        "[a-z]".to_owned(),
        "~".to_owned(),
        "-n".to_owned(),
        "#x".to_owned(),
        "{in}".to_owned(),
        "${HOME}".to_owned(),
        "$MERGANSER_IN".to_owned(),
        "\u{e9}".to_owned(),
    ]
    .into_iter()
    .map(String::into_bytes)
    .collect();
    names.push(b"not\xffUTF-8".to_vec());
    // Each byte that can be in a name and is no letter or digit, alone and between letters.
    let odd = (1..=u8::MAX).filter(|byte| !byte.is_ascii_alphanumeric() && !b"/.".contains(byte));
    for byte in odd.filter(|byte| byte.is_ascii() || *byte == 0xff) {
        names.push(vec![b'a', byte, b'b']);
    }
    names
}

/// The name of the folder of the command, and that of its output.
#[test]
fn n10_no_name_is_run_as_a_command() {
    let all = names();
    for (number, name) in all.iter().enumerate() {
        let folder = Folder::new();
        let name = OsStr::from_bytes(name);
        let odd = folder.path().join(name);
        fs::create_dir(&odd).expect("made");
        fs::write(odd.join("in"), b"b\na\n").expect("written");
        // All contexts for the names that are made to harm, and three each for the others.
        let few = |context: &usize| number < 25 || (number + context).is_multiple_of(5);
        for context in (0..CONTEXTS.len()).filter(few) {
            let stage = format!("s:{}", CONTEXTS[context]);
            let merge = [
                "cat",
                "cat {outs}",
                "cat $(cat \"{list}\")",
                "cat \"$MERGANSER_LIST\" >/dev/null; cat {outs} >{out}",
            ];
            let merge = merge[(number + context) % merge.len()];
            let mut command = merganser(["pipeline", "in", "--partitions", "1", "--quiet"]);
            command.args(["--stage", &stage, "--merge", merge, "-o"]).arg(odd.join(name));
            prints(command.current_dir(&odd));
            let said = || format!("{name:?}, {}, {merge}", CONTEXTS[context]);
            assert_eq!(fs::read(odd.join(name)).expect("the output"), b"b\na\n", "{}", said());
            fs::remove_file(odd.join(name)).expect("removed");
            let left: Vec<_> = fs::read_dir(&odd).expect("there").collect();
            assert_eq!(left.len(), 1, "{}: {left:?}", said());
        }
    }
}
