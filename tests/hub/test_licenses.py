"""Licences are checked against the Hub's list before the work."""

import pytest

from paranmt_hf.errors import InputError
from paranmt_hf.hub.licenses import IDS, License


@pytest.mark.parametrize("id", sorted(IDS - {"other"}))
def test_listed_licences_pass(id):
    License(id).check()
    assert License(id).header == {"license": id}


@pytest.mark.parametrize(
    ("license", "message"),
    [
        (License("cc-by-4"), r"'cc-by-4' is not a licence id of the Hub .*: did you mean cc-by-4.0"),
        (License("CC BY 4.0"), "did you mean cc-by-4.0"),
        (License("apache2.0"), "did you mean apache-2.0"),
        (License("proprietary"), r"its list of \w+ \d{4}\): for a licence that the Hub does not list give .other"),
        (License(""), "'' is not a licence id"),
        (License("other"), "other needs .license_name"),
        (License("other", "my-terms"), "license other needs"),
        (License("other", "My Terms", "https://a.org"), "license_name must be lower-case .*, was 'My Terms'"),
        (License("other", "a](b)", "https://a.org"), "license_name must be"),
        (License("other", "a", "a.org"), "license_link must be an address that begins with https://, was 'a.org'"),
        (License("other", "a", "https://a.org/x) [b](c"), "license_link must be"),
        (License("other", "a", "javascript:alert(1)"), "license_link must be"),
        (License("mit", "mit"), "are for the license 'other', not for 'mit'; leave them out"),
    ],
)
def test_others_are_refused(license, message):
    with pytest.raises(InputError, match=message):
        license.check()


def test_a_licence_with_a_name():
    license = License("other", "my-terms-1.0", "https://a.org/terms")
    license.check()
    assert license.header == {
        "license": "other",
        "license_name": "my-terms-1.0",
        "license_link": "https://a.org/terms",
    }
