"""Runs tests that are coroutines; a browser for the tests of the page, if there is one."""

import asyncio
import inspect
import shutil

import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem):
    """Run a coroutine in a loop for itself."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
    return True


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        pytest.skip("needs the program chromium")
    with playwright.sync_playwright() as driver:
        found = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield found
        found.close()


@pytest.fixture
def open_tab(browser):
    """Opens an address in a tab, of the browser of the tab `beside` or of one that keeps nothing
    yet, in which `script` runs first; no script of the page may fail."""
    contexts, complaints = [], []

    def make(address, *, beside=None, script=None, **settings):
        context = beside.context if beside else browser.new_context(**settings)
        contexts.append(context)
        if script is not None:
            context.add_init_script(script)
        page = context.new_page()
        page.set_default_timeout(30_000)  # another process may compile meanwhile
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(address)
        page.wait_for_selector("#players li")
        return page

    yield make
    for context in contexts:
        context.close()
    assert complaints == []
