#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The English of this project is plain and uses one word for one thing (docs/semantics.md, Glossary). This finds the words that
# readers stumbled over, and lines of documentation over 100 columns.
#     tools/scripts/words.sh [FILE|FOLDER...]      all pages and sources when nothing is named
# In .md files all text counts but code; in .c, .h, .cl, .py and .sh files only comments. A line that needs such a word in another
# sense carries the mark <!-- words: ok -->, or /* words: ok */ in code. Exit code 1: something was found.
set -euo pipefail
cd "$(dirname "$0")/../.."

# One pattern a line, and what to say instead.
words='\bbehind\b|after, next to, past the end
\bbesides?\b|next to, compared with, in addition to
\b(nobody|whoever|everybody)\b|the caller, the user, a thread
\b(at work|at hand)\b|overlap A with B; the current one
\b(unseen|hidden)\b|\bhid(es?|ing) (the|a|keys?|rows?|from|by|them|it)\b|masked, masks
\bkernel texts?\b|kernel source
\btexts? of (a|the|each) (kernel|plan|engine)|kernel source
\b(draws?|drawn) (a |the |its )?tiles?\b|claims a tile
\btiles? (is|are) drawn\b|tiles are claimed
\blook(s|ed|ing)? through (the )?masks?\b|classify mask tiles
\bhardly please\b|a plain sentence
\bby what is said\b|a plain sentence
\bR[0-9]{3}\b|a link, or the behaviour'

default=(README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md RELEASING.md docs .github include src cl tools tests examples)

# Prints FILE:LINE:TEXT of what counts in a file, code left out.
prose()
{
    case $1 in
    *.md) awk -v file="$1" '/^ *```/ { code = !code } !code && !/^    / { gsub(/`[^`]*`/, ""); gsub(/\]\([^)]*\)/, "]");
              print file ":" NR ":" $0 }' "$1" ;;
    *.c | *.h | *.cl) awk -v file="$1" '{ line = $0; if (inside || line ~ /\/\*|\/\//) { if (!inside) sub(/^.*(\/\*|\/\/)/, "", line);
              print file ":" NR ":" line } if ($0 ~ /\/\*/) inside = 1; if ($0 ~ /\*\//) inside = 0 }' "$1" ;;
    *) awk -v file="$1" '/^ *#/ { print file ":" NR ":" $0 }' "$1" ;;
    esac
}

# FILE:LINE of lines over 100 columns that a person wraps: no tables, code, links or marks.
long_lines()
{
    awk '/^ *```/ { code = !code } { print code || /^ *\|/ || /^    / || /^\[/ || /^!\[/ ? "" : $0 }' "$1" |
        LC_ALL=C.UTF-8 grep -nE '^.{101}' | sed "s|^|$1:|" || true
}

[ $# -gt 0 ] || set -- "${default[@]}"
mapfile -t files < <(find "$@" -type f \( -name '*.md' -o -name '*.[ch]' -o -name '*.cl' -o -name '*.py' -o -name '*.sh' \) |
    grep -v '/data/' | sort)

found=0
all=$(for file in "${files[@]}"; do prose "$file"; done | grep -v 'words: ok' || true)
while IFS= read -r line; do
    pattern=${line%|*} instead=${line##*|}
    if hits=$(grep -iE "$pattern" <<<"$all"); then
        printf '%s\n    say: %s\n' "$hits" "$instead"
        found=1
    fi
done <<<"$words"
for file in "${files[@]}"; do
    [ "${file##*.}" != md ] || long=$(long_lines "$file")
    if [ -n "${long:-}" ]; then
        printf '%s\n' "$long"
        found=1
        long=
    fi
done
exit $found
