# Stops a server whose starter is gone: it was killed, and could not do so itself.
# $1: the signal that stops the server; $2: its process id; $3: its folder.

# Ends when the starter closes the pipe, which it also does by dying.
read -r _

kill -s "$1" "$2"
tries=100
while [ "$tries" -gt 0 ] && kill -0 "$2"; do
    sleep 0.1
    tries=$((tries - 1))
done
kill -s KILL "$2"
rm -rf -- "$3"
