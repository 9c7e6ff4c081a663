import asyncio
import socket

from paranmt_hf.util.local_page import address, guarded, listen, new_token
from tests.refused import refused

TOKEN = "right-token"


async def app(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/plain")]})
    await send({"type": "http.response.body", "body": b"secret"})


def ask(query="", *, host="127.0.0.1:5000", cookie=None, method="GET", origin=None):
    sent = []

    async def send(message):
        sent.append(message)

    headers = [(b"host", host.encode())] + ([(b"cookie", cookie.encode())] if cookie else [])
    headers += [(b"origin", origin.encode())] if origin else []
    scope = {"type": "http", "method": method, "headers": headers, "query_string": query.encode()}
    asyncio.run(guarded(app, TOKEN, 5000)(scope, None, send))
    return sent[0]["status"], sent[1]["body"].decode(), sent[0]["headers"]


def test_only_the_token_opens_the_page():
    assert ask()[:2] == (403, "open the address that the command printed: it holds a token\n")
    assert ask("token=wrong")[0] == 403
    assert ask("token=%C3%A9")[0] == 403
    assert ask(f"token={TOKEN}")[:2] == (200, "secret")


def test_the_first_answer_sets_a_cookie_that_opens_the_others():
    *_, headers = ask(f"token={TOKEN}")
    (cookie,) = [value.decode() for name, value in headers if name == b"set-cookie"]
    assert cookie == "paranmt-5000=right-token; Path=/; HttpOnly; SameSite=Strict"
    status, _, headers = ask(cookie=f"other=1; {cookie.partition(';')[0]}")
    assert status == 200
    assert not [value for name, value in headers if name == b"set-cookie"]
    # That of a page on another port.
    assert ask(cookie=f"paranmt-5001={TOKEN}")[0] == 403
    assert ask(cookie="paranmt-5000=wrong")[0] == 403


def test_another_site_whose_name_leads_here_is_refused():
    assert ask(f"token={TOKEN}", host="evil.example:5000")[:2] == (
        403,
        "this page is served to its own address only\n",
    )
    assert ask(f"token={TOKEN}", host="localhost:5000")[0] == 200


def test_another_page_changes_nothing():
    asked = {"query": f"token={TOKEN}", "method": "PUT"}
    for origin in ("http://127.0.0.1:5001", "http://localhost:5000", "https://127.0.0.1:5000", "null"):
        assert ask(**asked, origin=origin)[:2] == (403, "only this page itself may change anything\n")
    assert ask(**asked, origin="http://127.0.0.1:5000")[0] == 200
    # Browsers always say where such a request comes from; other programs know the token.
    assert ask(**asked)[0] == 200
    assert ask(f"token={TOKEN}", origin="http://127.0.0.1:5001")[0] == 200


def test_nothing_is_loaded_from_elsewhere():
    headers = dict(ask(f"token={TOKEN}")[2])
    assert headers[b"content-security-policy"].startswith(b"default-src 'self';")
    assert headers[b"referrer-policy"] == b"no-referrer"


def test_a_port_that_is_taken():
    with listen(0) as first:
        port = first.getsockname()[1]
        assert first.getsockname()[0] == "127.0.0.1"
        for taken in (port, 70000):
            with refused("port") as error:
                listen(taken)
            assert error.value.option == "port"


def test_the_address_holds_the_token():
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port = listening.getsockname()[1]
        assert address(listening, "a b", annotator="x&y") == f"http://127.0.0.1:{port}/?token=a+b&annotator=x%26y"
    assert len({new_token() for _ in range(100)}) == 100
    assert len(new_token()) == 32
