//! The commands of a program as data, so that another one can list, complete and describe them.
//!
//! `merganser-near --outline` prints its own; `merganser` makes of it what [`clap::Command`] it would have had, if the
//! commands were its own. Names of a [`clap::Command`] live as long as the program, so each text is leaked once.

use clap::builder::PossibleValue;
use clap::{Arg, ArgAction, ArgGroup, Command, ValueHint};
use serde::{Deserialize, Serialize};

/// The word that makes a program print its outline.
pub const OUTLINE_WORD: &str = "--outline";

/// A command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandOutline {
    name: String,
    about: Option<String>,
    long_about: Option<String>,
    after_help: Option<String>,
    usage: Option<String>,
    needs_command: bool,
    is_hidden: bool,
    /// Whether it has no --help of its own.
    lacks_help: bool,
    args: Vec<ArgOutline>,
    groups: Vec<GroupOutline>,
    commands: Vec<CommandOutline>,
}

/// An option, or a word without a name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct ArgOutline {
    id: String,
    short: Option<char>,
    long: Option<String>,
    help: Option<String>,
    long_help: Option<String>,
    heading: Option<String>,
    names: Vec<String>,
    values: Vec<ValueOutline>,
    defaults: Vec<String>,
    action: ArgKind,
    /// Least and most values; `None` where they follow from the kind.
    number: Option<(usize, usize)>,
    index: Option<usize>,
    is_required: bool,
    /// Those that can't be there, too.
    excludes: Vec<String>,
    /// Whether the argument, its values, and its default are left out of the help.
    hidden: [bool; 3],
    needs_equals: bool,
    takes_paths: bool,
}

/// Arguments that belong together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct GroupOutline {
    id: String,
    args: Vec<String>,
    is_required: bool,
    is_multiple: bool,
}

/// A value that may follow an option.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct ValueOutline {
    name: String,
    help: Option<String>,
    is_hidden: bool,
}

/// The action of an argument that is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum ArgKind {
    Set,
    Append,
    True,
    False,
    Count,
    Help,
    Version,
}

impl ArgKind {
    fn of_action(action: &ArgAction) -> Self {
        match action {
            ArgAction::Append => ArgKind::Append,
            ArgAction::SetTrue => ArgKind::True,
            ArgAction::SetFalse => ArgKind::False,
            ArgAction::Count => ArgKind::Count,
            ArgAction::Help | ArgAction::HelpShort | ArgAction::HelpLong => ArgKind::Help,
            ArgAction::Version => ArgKind::Version,
            _ => ArgKind::Set,
        }
    }

    fn action(self) -> ArgAction {
        match self {
            ArgKind::Set => ArgAction::Set,
            ArgKind::Append => ArgAction::Append,
            ArgKind::True => ArgAction::SetTrue,
            ArgKind::False => ArgAction::SetFalse,
            ArgKind::Count => ArgAction::Count,
            ArgKind::Help => ArgAction::Help,
            ArgKind::Version => ArgAction::Version,
        }
    }
}

fn text(styled: Option<&clap::builder::StyledStr>) -> Option<String> {
    styled.map(ToString::to_string)
}

fn leaked(text: &str) -> &'static str {
    String::leak(text.to_owned())
}

impl CommandOutline {
    /// That of `command` and of all below it.
    #[must_use]
    pub fn of_command(command: &Command) -> Self {
        let mut built = command.clone();
        built.build();
        Self::of_built(&built, command)
    }

    /// `built_command` has the numbers of values and the places of words; the arguments are those of `command`, without what
    /// building adds.
    fn of_built(built_command: &Command, command: &Command) -> Self {
        let arg = |arg: &Arg| {
            let built = built_command.get_arguments().find(|known| known.get_id() == arg.get_id());
            let excludes = built_command.get_arg_conflicts_with(arg);
            let excludes = excludes.iter().map(|other| other.get_id().to_string()).collect();
            ArgOutline::of_arg(built.unwrap_or(arg), arg, excludes)
        };
        let below = |below: &Command| {
            let built = built_command.find_subcommand(below.get_name()).expect("it is below");
            CommandOutline::of_built(built, below)
        };
        CommandOutline {
            name: command.get_name().to_owned(),
            about: text(command.get_about()),
            long_about: text(command.get_long_about()),
            after_help: text(command.get_after_help()),
            usage: text(command.get_overridden_usage()),
            needs_command: command.is_subcommand_required_set(),
            is_hidden: command.is_hide_set(),
            lacks_help: command.is_disable_help_flag_set(),
            args: command.get_arguments().map(arg).collect(),
            groups: command.get_groups().map(GroupOutline::of_group).collect(),
            commands: command.get_subcommands().map(below).collect(),
        }
    }

    /// The name of the command.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The commands below it.
    #[must_use]
    pub fn commands(&self) -> &[CommandOutline] {
        &self.commands
    }

    /// The command: one that can be described, and not run.
    #[must_use]
    pub fn command(&self) -> Command {
        let mut command = Command::new(leaked(&self.name))
            .subcommand_required(self.needs_command)
            .arg_required_else_help(self.needs_command)
            .hide(self.is_hidden)
            .disable_help_flag(self.lacks_help)
            .args(self.args.iter().map(ArgOutline::arg))
            .groups(self.groups.iter().map(GroupOutline::group))
            .subcommands(self.commands.iter().map(CommandOutline::command));
        if let Some(about) = &self.about {
            command = command.about(leaked(about));
        }
        if let Some(about) = &self.long_about {
            command = command.long_about(leaked(about));
        }
        if let Some(help) = &self.after_help {
            command = command.after_help(leaked(help));
        }
        if let Some(usage) = &self.usage {
            command = command.override_usage(leaked(usage));
        }
        command
    }
}

impl GroupOutline {
    fn of_group(group: &ArgGroup) -> Self {
        GroupOutline {
            id: group.get_id().to_string(),
            args: group.get_args().map(ToString::to_string).collect(),
            is_required: group.is_required_set(),
            is_multiple: group.clone().is_multiple(),
        }
    }

    fn group(&self) -> ArgGroup {
        ArgGroup::new(leaked(&self.id))
            .args(self.args.iter().map(|arg| leaked(arg)))
            .required(self.is_required)
            .multiple(self.is_multiple)
    }
}

impl ArgOutline {
    fn of_arg(built: &Arg, arg: &Arg, excludes: Vec<String>) -> Self {
        let takes_values = arg.get_action().takes_values();
        let value = |value: &PossibleValue| ValueOutline {
            name: value.get_name().to_owned(),
            help: text(value.get_help()),
            is_hidden: value.is_hide_set(),
        };
        let number = built.get_num_args().filter(|_| takes_values);
        ArgOutline {
            id: arg.get_id().to_string(),
            short: arg.get_short(),
            long: arg.get_long().map(ToOwned::to_owned),
            help: text(arg.get_help()),
            long_help: text(arg.get_long_help()),
            heading: arg.get_help_heading().map(ToOwned::to_owned),
            names: built
                .get_value_names()
                .unwrap_or_default()
                .iter()
                .map(ToString::to_string)
                .collect(),
            values: match takes_values {
                true => arg.get_possible_values().iter().map(value).collect(),
                false => Vec::new(),
            },
            defaults: match takes_values {
                true => arg.get_default_values().iter().map(|v| v.display().to_string()).collect(),
                false => Vec::new(),
            },
            action: ArgKind::of_action(arg.get_action()),
            number: number.map(|range| (range.min_values(), range.max_values())),
            index: built.get_index(),
            is_required: arg.is_required_set(),
            excludes,
            hidden: [
                arg.is_hide_set(),
                arg.is_hide_possible_values_set(),
                arg.is_hide_default_value_set(),
            ],
            needs_equals: arg.is_require_equals_set(),
            takes_paths: matches!(
                arg.get_value_hint(),
                ValueHint::AnyPath | ValueHint::FilePath | ValueHint::DirPath
            ),
        }
    }

    fn arg(&self) -> Arg {
        let [hidden, values_hidden, default_hidden] = self.hidden;
        let mut arg = Arg::new(leaked(&self.id))
            .action(self.action.action())
            .required(self.is_required)
            .conflicts_with_all(self.excludes.iter().map(|arg| leaked(arg)))
            .hide(hidden)
            .hide_possible_values(values_hidden)
            .hide_default_value(default_hidden)
            .require_equals(self.needs_equals);
        if let Some(short) = self.short {
            arg = arg.short(short);
        }
        if let Some(long) = &self.long {
            arg = arg.long(leaked(long));
        }
        if let Some(help) = &self.help {
            arg = arg.help(leaked(help));
        }
        if let Some(help) = &self.long_help {
            arg = arg.long_help(leaked(help));
        }
        if let Some(heading) = &self.heading {
            arg = arg.help_heading(leaked(heading));
        }
        if let Some(index) = self.index {
            arg = arg.index(index);
        }
        if let Some((least, most)) = self.number {
            arg = arg.num_args(least..=most);
        }
        if !self.names.is_empty() && self.action.action().takes_values() {
            arg = arg.value_names(self.names.iter().map(|name| leaked(name)).collect::<Vec<_>>());
        }
        if !self.values.is_empty() {
            let value = |value: &ValueOutline| {
                let known = PossibleValue::new(leaked(&value.name)).hide(value.is_hidden);
                value.help.as_ref().map_or(known.clone(), |help| known.help(leaked(help)))
            };
            arg = arg.value_parser(self.values.iter().map(value).collect::<Vec<_>>());
        }
        if !self.defaults.is_empty() {
            let defaults = self.defaults.iter().map(|value| leaked(value));
            arg = arg.default_values(defaults.collect::<Vec<_>>());
        }
        if self.takes_paths {
            arg = arg.value_hint(ValueHint::AnyPath);
        }
        arg
    }
}
