import type { Command } from 'commander';
import type { CommandContext } from '../context.ts';
import { exitCodes, UsageError } from '../exit-codes.ts';

/** `completion SHELL`: a script that completes commands and their options, and types from the store. */
export async function completionCommand(context: CommandContext, shell: string, program: Command): Promise<number> {
  const commands = program.commands.map((command) => ({
    name: command.name(),
    description: command.description(),
    options: command.options.flatMap((option) => (option.long === undefined ? [] : [option.long])),
    takesType: command.registeredArguments[0]?.name() === 'type',
  }));
  const write = scripts[shell];
  if (write === undefined) throw new UsageError(`unknown shell ${shell}; expected bash, zsh or fish`);
  context.io.write(write(commands));
  return exitCodes.ok;
}

interface Completed {
  readonly name: string;
  readonly description: string;
  readonly options: readonly string[];
  readonly takesType: boolean;
}

const types = `steadystate types -o name 2>/dev/null`;

const scripts: Readonly<Record<string, (commands: readonly Completed[]) => string>> = {
  bash: (commands) => `_steadystate() {
  local word="\${COMP_WORDS[COMP_CWORD]}" command="\${COMP_WORDS[1]}"
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=( $(compgen -W "${commands.map(({ name }) => name).join(' ')}" -- "$word") )
    return
  fi
  case "$command" in
${commands.map(({ name, options, takesType }) => `    ${name}) if [[ "$word" == -* ]]; then COMPREPLY=( $(compgen -W "${options.join(' ')}" -- "$word") )${takesType ? `; elif [ "$COMP_CWORD" -eq 2 ]; then COMPREPLY=( $(compgen -W "$(${types})" -- "$word") )` : ''}; else COMPREPLY=( $(compgen -f -- "$word") ); fi ;;`).join('\n')}
  esac
}
complete -F _steadystate steadystate
`,
  zsh: (commands) => `#compdef steadystate
_steadystate() {
  local -a commands
  commands=(${commands.map(({ name, description }) => `'${name}:${description.replace(/'/g, '').replace(/:/g, ' ')}'`).join(' ')})
  if (( CURRENT == 2 )); then
    _describe command commands
    return
  fi
  case "$words[2]" in
${commands.map(({ name, options, takesType }) => `    ${name}) if [[ "$PREFIX" == -* ]]; then compadd -- ${options.join(' ')}${takesType ? `; elif (( CURRENT == 3 )); then compadd -- $(${types})` : ''}; else _files; fi ;;`).join('\n')}
  esac
}
compdef _steadystate steadystate
`,
  fish: (commands) =>
    `complete -c steadystate -f\n${commands
      .map(({ name, description, options, takesType }) =>
        [
          `complete -c steadystate -n __fish_use_subcommand -a ${name} -d '${description.replace(/'/g, '')}'`,
          ...options.map((option) => `complete -c steadystate -n '__fish_seen_subcommand_from ${name}' -l ${option.slice(2)}`),
          ...(takesType ? [`complete -c steadystate -n '__fish_seen_subcommand_from ${name}' -a '(${types})'`] : []),
        ].join('\n'),
      )
      .join('\n')}\n`,
};
