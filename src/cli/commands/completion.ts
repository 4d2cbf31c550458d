import type { CommandContext } from '../context.ts';
import { exitCodes, UsageError } from '../exit-codes.ts';

/** `completion SHELL`: a script that asks the program what could come next, and hands it to the shell. */
export async function completionCommand(context: CommandContext, shell: string): Promise<number> {
  const script = scripts[shell];
  if (script === undefined) throw new UsageError(`unknown shell ${shell}; expected bash, zsh or fish`);
  context.io.write(script);
  return exitCodes.ok;
}

/** Ids come from anywhere: what a shell would read as more than a word is quoted before it is put on the line. */
const scripts: Readonly<Record<string, string>> = {
  bash: `# steadystate completion for bash (3.2 and newer): source <(steadystate completion bash)
_steadystate() {
  local line="\${COMP_LINE:0:COMP_POINT}" words current strip value description
  read -a words <<<"$line"
  case "$line" in *[[:space:]]) words+=("") ;; esac
  current="\${words[\${#words[@]}-1]}"
  # Readline replaces only what stands behind the last of its word breaks.
  strip=""
  case "$COMP_WORDBREAKS" in *=*) case "$current" in *=*) strip="\${current%"\${current##*=}"}" ;; esac ;; esac
  case "$COMP_WORDBREAKS" in *:*) case "\${current#"$strip"}" in *:*) strip="\${current%"\${current##*:}"}" ;; esac ;; esac
  COMPREPLY=()
  while IFS=$'\\t' read -r value description; do
    case "$value" in
      :files)
        compopt -o filenames 2>/dev/null
        while IFS= read -r value; do COMPREPLY+=("$value"); done < <(compgen -f -- "\${current#"$strip"}")
        ;;
      :open) compopt -o nospace 2>/dev/null ;;
      *)
        case "$value" in *= | */) compopt -o nospace 2>/dev/null ;; esac
        printf -v value '%q' "\${value#"$strip"}"
        COMPREPLY+=("$value")
        ;;
    esac
  done < <(steadystate __complete -- "\${words[@]:1}" 2>/dev/null)
}
complete -F _steadystate steadystate
`,
  zsh: `#compdef steadystate
# steadystate completion for zsh: source <(steadystate completion zsh), or as _steadystate in a folder of $fpath
_steadystate() {
  local line value
  local -a lines values displays space
  lines=("\${(@f)$(steadystate __complete -- "\${(@Q)words[2,CURRENT]}" 2>/dev/null)}")
  for line in "\${lines[@]}"; do
    value="\${line%%$'\\t'*}"
    case "$value" in
      '') ;;
      :files) _files ;;
      :open) space=(-S '') ;;
      *)
        [[ "$value" == *[=/] ]] && space=(-S '')
        values+=("$value")
        if [[ "$line" == *$'\\t'?* ]]; then displays+=("$value  -- \${line#*$'\\t'}"); else displays+=("$value"); fi
        ;;
    esac
  done
  (( \${#values} )) && compadd "\${space[@]}" -l -d displays -- "\${values[@]}"
}
if [ "\${funcstack[1]}" = _steadystate ]; then _steadystate "$@"; else compdef _steadystate steadystate; fi
`,
  fish: `# steadystate completion for fish: steadystate completion fish | source
function __steadystate_complete
  set -l words (commandline -opc) (commandline -ct)
  for line in (steadystate __complete -- $words[2..-1] 2>/dev/null)
    switch $line
      case :files
        __fish_complete_path (commandline -ct)
      case ':*'
      case '*'
        echo $line
    end
  end
end
complete -c steadystate -f -a '(__steadystate_complete)'
`,
};
