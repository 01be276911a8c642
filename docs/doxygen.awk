# SPDX-License-Identifier: Apache-2.0
# Gives the public header's comments the form that Doxygen reads: one before what it describes, or behind it on its line, where it
# speaks of every name of that line. Lines of dashes are for readers of the header.

# The whole comment that begins on this line.
function comment_from(line,    text)
{
    text = substr(line, index(line, "/*"))
    while (text !~ /\*\// && (getline line) > 0)
        text = text "\n" line
    return text
}

FNR == 1 { print "/** @file"; next }
FNR == 2 { next }
# The twins of functions that take a struct's size are no business of callers.
/^CLATTN_API .*_sized\(/ {
    while ($0 !~ /;/ && (getline) > 0)
        ;
    next
}
/^#define CLATTN_STATUS_ENUM/ { next }
/^\/\* ---/ { comment_from($0); next }
/^ *\/\*/ { sub(/\/\*/, "/**"); print; next }
/[^ ].*\/\*/ && !/^ \*/ && !/\/\*.*\\$/ {
    code = substr($0, 1, index($0, "/*") - 1)
    text = comment_from($0)
    if (code ~ /\{ *$/) {
        sub(/\/\*/, "/**", text)
        print text
        print code
    } else {
        sub(/\/\*/, "/**<", text)
        type = code
        if (code ~ /^ +[a-z_0-9]+ [a-z_0-9]+(, [a-z_0-9]+)+; *$/) {
            sub(/^ +/, "", type)
            names = type
            sub(/ .*/, "", type)
            sub(/^[^ ]+ /, "", names)
            gsub(/[; ]/, "", names)
            count = split(names, name, ",")
            for (i = 1; i <= count; i++)
                print "    " type " " name[i] "; " text
        } else {
            print code text
        }
    }
    next
}
{ print }
